-- The ground: learnings with their history, and the record of the work that they come from and serve.
-- Every key starts with the project, so that one PostgreSQL database holds many projects and can be sharded by it.
-- Types are names that both dialects read alike. Times are UTC milliseconds, flags are 0 or 1, lists and objects are JSON.

-- A statement learnt from work.
create table learning (
    project text not null,
    id text not null,                                       -- learn_…
    title text not null check (length(title) between 1 and 100),
    context text not null default '',                       -- what one was working on
    observation text not null default '',                   -- what one noticed
    implication text not null default '',                   -- how it should change future work
    action text not null default '',                        -- the specific change to make
    tags text not null default '[]',                        -- JSON list, lower case, sorted
    domain text not null default '',                        -- the field of work: database, ui, …
    category text not null default '',                      -- the section that it stands in; agents see some of them
    kind text not null check (kind in ('solution', 'gotcha', 'best-practice', 'constraint')),
    polarity text not null check (polarity in ('do', 'avoid')),
    triggers text not null default '{}',                    -- JSON object: files, commands, errors, tools, task_types
    origin text not null check (origin in ('person', 'agent', 'model', 'import')),
    goal text not null default '',                          -- the goal, task, discovery and commit that it was learnt from;
    task text not null default '',                          -- no foreign keys: a learning outlives its source and moves
    discovery text not null default '',                     -- between stores
    git_commit text not null default '',
    confidence double precision not null check (confidence between 0.1 and 1.0),
    times_injected bigint not null default 0,
    times_helpful bigint not null default 0,
    times_not_helpful bigint not null default 0,
    recurrences bigint not null default 0,                  -- how often the same was learnt again
    created_at bigint not null,
    updated_at bigint not null,
    last_injected_at bigint,
    last_helpful_at bigint,
    last_decayed_at bigint,
    status text not null check (status in ('proposed', 'active', 'hidden', 'archived', 'superseded')),
    superseded_by text not null default '',                 -- the learning that replaces it
    pinned smallint not null default 0 check (pinned in (0, 1)),
    version bigint not null,                                -- number of its latest event
    primary key (project, id)
);
create index learning_by_age on learning (project, created_at, id);
create index learning_by_status on learning (project, status, created_at, id);
create index learning_by_confidence on learning (project, status, confidence);
create index learning_by_domain on learning (project, domain, status);
create index learning_by_category on learning (project, category, status);
create index learning_by_goal on learning (project, goal, status);
create index learning_by_successor on learning (project, superseded_by);

-- One change: who did what to which learning, when, from which values to which.
create table event (
    project text not null,
    subject text not null,                                  -- the learning
    version bigint not null,                                -- counts the changes of one subject from 1
    id text not null,                                       -- event_…
    at bigint not null,
    who text not null,
    what text not null,                                     -- add, edit, archive, …
    old text not null,                                      -- JSON object of the changed fields before
    new text not null,                                      -- … and after
    reason text not null default '',
    undoes text not null default '',                        -- the event that this one takes back
    primary key (project, subject, version)
);
create unique index event_by_id on event (project, id);
create index event_by_time on event (project, at);

-- What a set of tasks serves.
create table goal (
    project text not null,
    name text not null,
    title text not null default '',
    created_at bigint not null,
    primary key (project, name)
);

-- One piece of work for an agent.
create table task (
    project text not null,
    id text not null,                                       -- task_…
    title text not null,
    text text not null default '',
    type text not null default 'implement',
    status text not null check (status in ('waiting', 'ready', 'running', 'done', 'failed', 'escalated', 'cancelled')),
    goal text not null default '',
    agent text not null default '',
    skip_learnings smallint not null default 0 check (skip_learnings in (0, 1)),
    created_at bigint not null,
    updated_at bigint not null,
    primary key (project, id)
);
create index task_by_status on task (project, status, created_at, id);
create index task_by_goal on task (project, goal);

-- One run of an agent at a task. All figures per task and per model are queries over this table.
create table attempt (
    project text not null,
    id text not null,                                       -- attempt_…
    task text not null,
    number bigint not null,                                 -- counts the attempts at one task from 1
    result text not null check (result in ('done', 'failed', 'incomplete', 'interrupted')),
    model text not null default '',
    model_reason text not null default '',
    started_at bigint not null,
    duration_ms bigint,
    cost_usd double precision,
    tokens_in bigint,
    tokens_out bigint,
    difficulty smallint check (difficulty between 0 and 4), -- rank: trivial, easy, moderate, hard, blocked
    primary key (project, id),
    unique (project, task, number),
    foreign key (project, task) references task (project, id) on delete cascade
);
create index attempt_by_time on attempt (project, started_at);
create index attempt_by_model on attempt (project, model, result);

-- The report on a failed attempt.
create table failure (
    project text not null,
    attempt text not null,
    task text not null,
    tried text not null default '',
    reason text not null default '',
    category text not null check (category in ('test', 'build', 'missing-file', 'logic', 'type', 'dependency', 'timeout', 'unknown')),
    files text not null default '[]',                       -- JSON list
    error text not null default '',                         -- the end of the error output
    avoid text not null default '',
    suggestion text not null default '',
    created_at bigint not null,
    primary key (project, attempt),
    foreign key (project, attempt) references attempt (project, id) on delete cascade
);
create index failure_by_task on failure (project, task, created_at);
create index failure_by_category on failure (project, category);

-- What an agent was given before it worked. The text itself is rendered again from the receipt.
create table brief (
    project text not null,
    id text not null,                                       -- brief_…
    task text not null default '',
    agent text not null default '',
    tokens bigint not null default 0,
    text_hash text not null default '',
    receipt text not null default '{}',                     -- JSON object: considered, chosen, left out and why
    created_at bigint not null,
    primary key (project, id)
);
create index brief_by_task on brief (project, task, created_at);
create index brief_by_time on brief (project, created_at);

-- One learning stood in a brief of a task, or was held out of it.
create table injection (
    project text not null,
    learning text not null,
    task text not null,
    brief text not null,                                    -- the latest brief of the task that carried it
    injected_at bigint not null,
    held_out smallint not null default 0 check (held_out in (0, 1)),
    primary key (project, learning, task),                  -- no key to the learning: it may live in the user-wide store
    foreign key (project, task) references task (project, id) on delete cascade
);
create index injection_by_task on injection (project, task);
create index injection_by_brief on injection (project, brief);

-- Helpful or not helpful, once for each injection.
create table mark (
    project text not null,
    learning text not null,
    task text not null,
    helpful smallint not null check (helpful in (0, 1)),
    at bigint not null,
    who text not null default '',
    primary key (project, learning, task),
    foreign key (project, learning, task) references injection (project, learning, task) on delete cascade
);
create index mark_by_task on mark (project, task);

-- Something that only a person may decide.
create table escalation (
    project text not null,
    id text not null,                                       -- esc_…
    subject text not null,                                  -- the task, learning or topic file that it is about
    question text not null,
    detail text not null default '{}',                      -- JSON object
    status text not null check (status in ('open', 'resolved')),
    answer text not null default '',
    created_at bigint not null,
    resolved_at bigint,
    resolved_by text not null default '',
    primary key (project, id)
);
create index escalation_by_status on escalation (project, status, created_at);

-- A run that moved aged learnings into topic files.
create table consolidation (
    project text not null,
    id text not null,
    cause text not null check (cause in ('size', 'staleness', 'person')),
    result text not null check (result in ('running', 'done', 'failed')),
    entries text not null default '[]',                     -- JSON list: entry, verdict, target
    report text not null default '',                        -- path of the report
    started_at bigint not null,
    finished_at bigint,
    primary key (project, id)
);
create index consolidation_by_time on consolidation (project, started_at);

-- A call to a language model, for spending caps and accounts.
create table model_call (
    project text not null,
    id text not null,
    purpose text not null,
    provider text not null,
    model text not null,
    task text not null default '',
    result text not null check (result in ('done', 'failed', 'timeout', 'refused')),
    tokens_in bigint,
    tokens_out bigint,
    cost_usd double precision,
    duration_ms bigint,
    at bigint not null,
    primary key (project, id)
);
create index model_call_by_time on model_call (project, at);

-- The spooled operations that have taken effect: replaying one twice changes nothing.
create table operation (
    project text not null,
    id text not null,                                       -- op_…
    applied_at bigint not null,
    primary key (project, id)
);
