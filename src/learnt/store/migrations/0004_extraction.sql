-- What was found in agents' work, once for each task in which it was found: how often something recurs is a count.
create table discovery (
    project text not null,
    id text not null,                                       -- disc_…
    type text not null check (type in ('blocker', 'constraint', 'pattern', 'decision', 'dependency')),
    rule text not null,                                     -- how it was found: command, edit, words, review, model, …
    text text not null,
    failed text not null default '',                        -- the command or file that failed
    error text not null default '',                         -- the line that tells why
    worked text not null default '',                        -- what worked then
    excerpt text not null default '',                       -- the words that it rests on
    files text not null default '[]',                       -- JSON list
    task text not null default '',
    attempt text not null default '',
    git_commit text not null default '',
    sign text not null,                                     -- short hash of what it says: the same found again has it too
    learning text not null default '',                      -- the learning that it became or speaks for
    skipped text not null default '',                       -- why it became none
    created_at bigint not null,
    primary key (project, id)
);
create unique index discovery_by_sign on discovery (project, sign, task);
create index discovery_by_learning on discovery (project, learning, created_at);
create index discovery_by_task on discovery (project, task, created_at);

-- What an agent said in an attempt, until it is mined for discoveries.
create table material (
    project text not null,
    attempt text not null,
    task text not null,
    text text not null,
    git_commit text not null default '',                    -- what was checked out then
    created_at bigint not null,
    primary key (project, attempt),
    foreign key (project, attempt) references attempt (project, id) on delete cascade
);
create index material_by_task on material (project, task);

-- Transcripts and commits that were mined already, so that nothing is learnt twice.
create table already_read (
    project text not null,
    id text not null,                                       -- a transcript's path or session, or a commit
    size bigint not null,                                   -- how much of it there was
    task text not null default '',
    read_at bigint not null,
    primary key (project, id)
);

-- One making of a learnings file: what it said, and what changed against the one before.
create table regeneration (
    project text not null,
    id text not null,                                       -- r_…: named in the last line of the file
    goal text not null default '',                          -- whose file; empty: the project's own
    cause text not null check (cause in ('person', 'count', 'edit')), -- asked for, after so many tasks, or only to take edits over
    result text not null check (result in ('running', 'done', 'unchanged', 'failed')),
    reason text not null default '',                        -- why it failed
    text text not null default '',
    bullets text not null default '[]',                     -- JSON list of [learning, text, section]
    loose text not null default '[]',                       -- JSON list of what people wrote beside bullets: [section, text, below]
    tasks bigint not null default 0,                        -- from how many recent tasks
    added bigint not null default 0,
    removed bigint not null default 0,
    kept bigint not null default 0,
    skipped bigint not null default 0,                      -- findings that became no learning
    churn double precision not null default 0,              -- the share of bullets that came or went
    cost_usd double precision,                              -- of the model calls for it
    started_at bigint not null,
    finished_at bigint,
    primary key (project, id)
);
create index regeneration_by_time on regeneration (project, started_at, id);

-- Every text with which a learning stood in a learnings file: an old one that a branch brings back is no edit, a purged one no addition.
create table rendered_line (
    project text not null,
    learning text not null,
    sign text not null,                                     -- hash of the text; empty: of any, because the learning was purged
    primary key (project, learning, sign)
);

-- Numbers that count up: tasks since the last regeneration.
create table counter (
    project text not null,
    name text not null,
    value bigint not null,
    primary key (project, name)
);

-- What people answered when asked whether the learnings helped.
create table opinion (
    project text not null,
    id text not null,
    answer text not null check (answer in ('yes', 'no', 'unsure')),
    who text not null,
    at bigint not null,
    primary key (project, id)
);
create index opinion_by_time on opinion (project, at);

-- Why a model call failed, and which regeneration it was made for.
alter table model_call add column reason text not null default '';
alter table model_call add column regeneration text not null default '';
create index model_call_by_regeneration on model_call (project, regeneration);
