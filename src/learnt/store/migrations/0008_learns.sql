-- Situations, symptoms and other names, in the words in which a user would put them: a JSON list.
alter table learning add column cues text not null default '[]';
-- The path of a file such as CLAUDE.md that holds the learning and that clients load by themselves.
alter table learning add column loaded_from text not null default '';
alter table learning_words add column cues text not null default '';

-- What is to be told once in a conversation.
create table notice (
    project text not null,
    task text not null,                                     -- the conversation
    what text not null check (what in ('kept', 'ask')),     -- that a person's words were kept; that the agent should write down what it found out
    subject text not null default '',                       -- kept: the learning
    created_at bigint not null,
    shown_at bigint,
    primary key (project, task, what, subject)
);
create index notice_by_time on notice (project, created_at);
create index notice_by_subject on notice (project, subject);
