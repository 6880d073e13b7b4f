-- The role that has logged in, which the server knows; `who` is what the client says.
alter table import_batch add column role text not null default session_user;

-- What a learning means, as a vector: one byte for each dimension.
create table learning_vector (
    project text not null,
    model text not null,
    number bigint not null,                                 -- the learning's number
    vector bytea not null,
    primary key (project, model, number)
);

-- The signs of the vectors' dimensions, for a quick look at all of them. A row is for some hundred learnings and 64
-- dimensions: a byte holds the signs of eight dimensions, and the bytes for the same dimensions stand together.
create table vector_block (
    project text not null,
    model text not null,
    part bigint not null,                                   -- which dimensions
    block bigint not null,                                  -- which learnings
    signs bytea not null,
    primary key (project, model, part, block)
);
