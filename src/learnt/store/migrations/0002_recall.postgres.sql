-- Recall: the words of every learning, cut by our own code, so that both engines find the same.

-- The words of a learning, field by field.
create table learning_words (
    project text not null,
    learning text not null,
    title text not null,                                    -- words of the title, separated by spaces
    context text not null,
    observation text not null,
    implication text not null,
    action text not null,
    tags text not null,
    length bigint not null,                                 -- number of words in all fields
    primary key (project, learning),
    foreign key (project, learning) references learning (project, id) on delete cascade
);

-- Which learnings hold a word, and how often: what the candidates of a search are ranked from.
create table posting (
    project text not null,
    word text not null,
    learning text not null,
    times bigint not null,
    primary key (project, word, learning),
    foreign key (project, learning) references learning (project, id) on delete cascade
);
create index posting_by_learning on posting (project, learning);
