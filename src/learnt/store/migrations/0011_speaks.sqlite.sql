-- The events of an import, for many learnings at once. What such an event says about a learning is what the learning
-- says; before anything about the learning changes, the event becomes a row of `event`.
create table import_batch (
    project text not null,
    number bigint not null,
    id text not null,                                       -- import_…
    at bigint not null,
    who text not null,
    role text not null default '',                          -- a file has no login roles
    primary key (project, number)
);
create index import_batch_by_id on import_batch (project, id);

-- The words of all learnings, each once. A number is never used again, so that it always means the same word.
drop trigger learning_words_inserted;
drop trigger learning_words_deleted;
drop trigger learning_words_updated;
drop table learning_index;
drop table learning_words;
drop table word;
create table word (
    number integer primary key autoincrement,
    project text not null,
    word text not null,
    learnings bigint not null,                              -- in how many learnings it stands: rare words are looked up first
    unique (project, word)
);

-- The words of a learning, field by field, as the numbers of words; one character stands for one word.
create table learning_words (
    number integer primary key,                             -- the learning's number
    words text not null,
    length bigint not null                                  -- number of words in all fields
);

-- Which learnings hold a word: the numbers of the learnings, by the numbers of the words. It holds no text, so that
-- nothing of a purged learning can stay in it.
create virtual table learning_index using fts5 (words, content = '', columnsize = 0, detail = none, tokenize = 'ascii');

-- What a learning means, as a vector: one byte for each dimension.
create table learning_vector (
    project text not null,
    model text not null,
    number bigint not null,                                 -- the learning's number
    vector blob not null,
    primary key (project, model, number)
) without rowid;

-- The signs of the vectors' dimensions, for a quick look at all of them. A row is for some hundred learnings and 64
-- dimensions: a byte holds the signs of eight dimensions, and the bytes for the same dimensions stand together.
create table vector_block (
    project text not null,
    model text not null,
    part bigint not null,                                   -- which dimensions
    block bigint not null,                                  -- which learnings
    signs blob not null,
    primary key (project, model, part, block)
);
