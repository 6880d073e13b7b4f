-- In how many learnings a word stands: rare words are looked up first.
create table word (
    project text not null,
    word text not null,
    learnings bigint not null,
    primary key (project, word)
);

-- How many learnings are indexed, and how many words they have together.
create table corpus (
    project text not null,
    learnings bigint not null,
    words bigint not null,
    primary key (project)
);

-- What a trigger of a learning looks like, for exact matches. The anchor is a word that any match must contain.
create table learning_trigger (
    project text not null,
    learning text not null,
    kind text not null check (kind in ('files', 'commands', 'errors', 'tools', 'task_types')),
    pattern text not null,
    anchor text not null,
    primary key (project, learning, kind, pattern),
    foreign key (project, learning) references learning (project, id) on delete cascade
);
create index learning_trigger_by_anchor on learning_trigger (project, kind, anchor);
