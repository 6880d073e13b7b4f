-- What a proposed learning would replace: a JSON list of ids.
alter table learning add column replaces text not null default '[]';

create index learning_by_task on learning (project, task);

-- Short hashes of what a learning says (its observation or else its title) and of its title, without case, white space and
-- punctuation: what is learnt again is found by them.
alter table learning add column sameness text not null default '';
alter table learning add column title_sameness text not null default '';
create index learning_by_sameness on learning (project, sameness);
create index learning_by_title_sameness on learning (project, title_sameness);

-- When a failure report was put away: it then stands in no brief any more.
alter table failure add column archived_at bigint;

-- What a task is worked on with.
alter table task add column spec text not null default '';          -- path of a file that says more
alter table task add column verify text not null default '';        -- a command that must succeed before it is done
alter table task add column model text not null default '';         -- the only model to use
alter table task add column next_model text not null default '';    -- the model that the last agent asked for
alter table task add column based_on text not null default '';      -- the task whose work it goes on with
alter table task add column parent text not null default '';        -- the task that it was split from
alter table task add column branch text not null default '';        -- where the work of a worktree is kept
alter table task add column fresh_since bigint not null default 0;  -- failures before this moment do not count any more

-- Whether it waits in the queue of `learnt work`; other loops keep their tasks to themselves.
alter table task add column queued smallint not null default 0;
update task
   set queued = 1
 where type != 'session'
   and status = 'ready'
   and not exists (select 1 from brief where brief.project = task.project and brief.task = task.id)
   and not exists (select 1 from attempt where attempt.project = task.project and attempt.task = task.id);

-- What an agent said at the end of an attempt, and where its client wrote the conversation down.
alter table attempt add column summary text not null default '';
alter table attempt add column transcript text not null default '';

-- A task waits for another one.
create table prerequisite (
    project text not null,
    task text not null,
    needs text not null,
    primary key (project, task, needs),
    foreign key (project, task) references task (project, id) on delete cascade
);
create index prerequisite_by_needs on prerequisite (project, needs);

-- A worker holds a task. Whoever has no row here any more may not say how the task ended.
create table claim (
    project text not null,
    task text not null,
    attempt text not null,                                  -- attempt_…: the attempt that is being made
    worker text not null,
    host text not null,
    pid bigint not null,
    agent_pid bigint not null default 0,                    -- the agent's process group, once it is started
    agent_started text not null default '',                 -- when that process started: numbers come again
    model text not null default '',
    model_reason text not null default '',
    folder text not null default '',
    started_at bigint not null,
    held_until bigint not null,
    primary key (project, task),
    foreign key (project, task) references task (project, id) on delete cascade
);
create index claim_by_time on claim (project, held_until);
