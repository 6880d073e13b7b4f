-- The full-text index gets a column for the cues, which no learning has yet.
drop trigger learning_words_inserted;
drop trigger learning_words_deleted;
drop trigger learning_words_updated;
drop table learning_index;
create virtual table learning_index using fts5 (
    title, context, observation, implication, action, tags, cues,
    content = 'learning_words',
    content_rowid = 'number',
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_-+#.'"
);
insert into learning_index (learning_index, rank) values ('secure-delete', 1);
insert into learning_index (learning_index) values ('rebuild');

create trigger learning_words_inserted after insert on learning_words begin
    insert into learning_index (rowid, title, context, observation, implication, action, tags, cues)
    values (new.number, new.title, new.context, new.observation, new.implication, new.action, new.tags, new.cues);
end;
create trigger learning_words_deleted after delete on learning_words begin
    insert into learning_index (learning_index, rowid, title, context, observation, implication, action, tags, cues)
    values ('delete', old.number, old.title, old.context, old.observation, old.implication, old.action, old.tags, old.cues);
end;
create trigger learning_words_updated after update on learning_words begin
    insert into learning_index (learning_index, rowid, title, context, observation, implication, action, tags, cues)
    values ('delete', old.number, old.title, old.context, old.observation, old.implication, old.action, old.tags, old.cues);
    insert into learning_index (rowid, title, context, observation, implication, action, tags, cues)
    values (new.number, new.title, new.context, new.observation, new.implication, new.action, new.tags, new.cues);
end;
