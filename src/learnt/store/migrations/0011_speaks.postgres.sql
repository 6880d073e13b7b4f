-- The events of an import, for many learnings at once. What such an event says about a learning is what the learning
-- says; before anything about the learning changes, the event becomes a row of `event`.
create table import_batch (
    project text not null,
    number bigint not null,
    id text not null,                                       -- import_…
    at bigint not null,
    who text not null,
    role text not null default session_user,                -- the login, which the server knows; `who` is what the client says
    primary key (project, number)
);
create index import_batch_by_id on import_batch (project, id);

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
