-- Cues that the user's model wrote for the learning: a JSON list.
alter table learning add column model_cues text not null default '[]';
-- From people's prompts of tasks in which the learning helped, newest first: a JSON list.
alter table learning add column observed_cues text not null default '[]';

-- Distinctive identifiers that learnings name; a call that names one is an occasion to show the learning.
create table learning_name (
    project text not null,
    learning text not null,
    name text not null,                                     -- as it is spelt
    common smallint not null default 0 check (common in (0, 1)), -- so much names it that it says nothing
    primary key (project, learning, name),
    foreign key (project, learning) references learning (project, id) on delete cascade
);
create index learning_name_by_name on learning_name (project, name);
