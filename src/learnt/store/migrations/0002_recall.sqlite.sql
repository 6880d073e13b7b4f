-- Recall: the words of every learning, cut by our own code, so that both engines find the same.

-- The words of a learning, field by field.
create table learning_words (
    number integer primary key,                             -- key of the full-text index; declared, so that a vacuum keeps it
    project text not null,
    learning text not null,
    title text not null,                                    -- words of the title, separated by spaces
    context text not null,
    observation text not null,
    implication text not null,
    action text not null,
    tags text not null,
    length bigint not null,                                 -- number of words in all fields
    unique (project, learning),
    foreign key (project, learning) references learning (project, id) on delete cascade
);

-- The full-text index over them. Words arrive cut, so that the tokenizer has only spaces to see.
create virtual table learning_index using fts5 (
    title, context, observation, implication, action, tags,
    content = 'learning_words',
    content_rowid = 'number',
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_-+#.'"
);
-- What is deleted must leave the index, too: a purged secret may not stay in it.
insert into learning_index (learning_index, rank) values ('secure-delete', 1);

create trigger learning_words_inserted after insert on learning_words begin
    insert into learning_index (rowid, title, context, observation, implication, action, tags)
    values (new.number, new.title, new.context, new.observation, new.implication, new.action, new.tags);
end;
create trigger learning_words_deleted after delete on learning_words begin
    insert into learning_index (learning_index, rowid, title, context, observation, implication, action, tags)
    values ('delete', old.number, old.title, old.context, old.observation, old.implication, old.action, old.tags);
end;
create trigger learning_words_updated after update on learning_words begin
    insert into learning_index (learning_index, rowid, title, context, observation, implication, action, tags)
    values ('delete', old.number, old.title, old.context, old.observation, old.implication, old.action, old.tags);
    insert into learning_index (rowid, title, context, observation, implication, action, tags)
    values (new.number, new.title, new.context, new.observation, new.implication, new.action, new.tags);
end;
