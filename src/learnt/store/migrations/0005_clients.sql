-- In which client a brief was given, on which occasion, who asked for it, and how long it took to make.
alter table brief add column client text not null default '';
alter table brief add column occasion text not null default 'task'; -- task, session, prompt, agent, tool, failure, compaction, template
alter table brief add column asked_by text not null default '';     -- hook, prompt (whoever builds one), tool (the agent itself), person
alter table brief add column duration_ms bigint;

-- The client in which a conversation is held, and the branch that was checked out when an attempt ended.
alter table task add column client text not null default '';
alter table attempt add column branch text not null default '';

-- A command that failed in this project, and what worked then: the latest time of each.
create table misstep (
    project text not null,
    sign text not null,                                     -- short hash of the command without what differs from run to run
    command text not null,
    asked text not null default '',                         -- the program and what it was asked to do: git show
    wrong text not null default '[]',                       -- JSON list: the words that the command had and what worked then had not
    error text not null default '',                         -- the line that tells why
    task text not null,                                     -- the conversation in which it failed last
    failed_at bigint not null,
    failures bigint not null default 1,
    worked text not null default '',                        -- the command that worked then
    worked_at bigint,
    succeeded_at bigint,                                    -- when the command itself last succeeded
    primary key (project, sign)
);
create index misstep_by_task on misstep (project, task, failed_at);
create index misstep_by_asked on misstep (project, asked, failed_at);

-- An agent was warned of a misstep at the call itself, once in a conversation, and what came of it.
create table warning (
    project text not null,
    task text not null,
    sign text not null,
    brief text not null,
    agent text not null default '',
    denied smallint not null default 0 check (denied in (0, 1)), -- the call was stopped; else it was made all the same
    failures bigint not null default 0,                     -- how often the command failed in this conversation since
    needless smallint not null default 0 check (needless in (0, 1)), -- the command succeeded
    warned_at bigint not null,
    primary key (project, task, sign)
);
create index warning_by_time on warning (project, warned_at);

-- Where no task says what matters, at the start of a conversation, say, the foremost learnings of each category are given.
drop index learning_by_category;
create index learning_by_category on learning (
    project, category, status, pinned desc, (times_helpful - times_not_helpful) desc, recurrences desc, created_at desc,
    id desc
);
