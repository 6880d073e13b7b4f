-- Who vouches for a learning, who wrote it, and who may see it.
alter table learning add column vouched text not null default '' check (vouched in ('', 'person', 'evidence'));
alter table learning add column author text not null default '';         -- a person, an agent, or what it was copied from
alter table learning add column visibility text not null default 'project';
create index learning_by_trust on learning (
    project, status, (case when vouched = '' then -1 when pinned = 1 then 1 else confidence end)
);

-- What speaks for or against a learning, once for each conversation.
create table evidence (
    project text not null,
    learning text not null,
    conversation text not null,                             -- the task; for a sub-agent, the task that it works for
    kind text not null check (kind in ('helpful', 'not helpful', 'repeated', 'worked')),
    at bigint not null,
    primary key (project, learning, conversation, kind)
);

-- A command that succeeded in a conversation: the first time.
create table command_run (
    project text not null,
    sign text not null,                                     -- short hash of the command
    task text not null,
    at bigint not null,
    primary key (project, sign, task)
);
create index command_run_by_time on command_run (project, at);

-- What is known from before. A mark that was taken back is no longer in its table.
insert into evidence (project, learning, conversation, kind, at)
select mark.project, mark.learning, coalesce(nullif(max(task.parent), ''), mark.task),
       case when mark.helpful = 1 then 'helpful' else 'not helpful' end, max(mark.at)
  from mark
  left join task on task.project = mark.project and task.id = mark.task
 group by mark.project, mark.learning, mark.task, mark.helpful
    on conflict do nothing;
insert into evidence (project, learning, conversation, kind, at)
select project, subject, reason, 'repeated', max(at)
  from event
 where what = 'recur'
   and reason <> ''
 group by project, subject, reason
    on conflict do nothing;

update learning
   set author = coalesce((
           select event.who
             from event
            where event.project = learning.project
              and event.subject = learning.id
              and event.version = 1
       ), '');
update learning
   set author = 'tool output'
 where origin = 'agent'
   and exists (
       select 1
         from discovery
        where discovery.project = learning.project
          and discovery.learning = learning.id
          and discovery.task = learning.task
          and discovery.rule in ('command', 'edit', 'call', 'verification')
   );
update learning
   set author = 'commit message'
 where origin = 'agent'
   and task = ''
   and git_commit <> '';

update learning
   set vouched = 'person', confidence = case when confidence < 0.8 then 0.8 else confidence end
 where origin = 'person'
    or exists (
       select 1
         from event
        where event.project = learning.project
          and event.subject = learning.id
          and event.who <> 'learnt'
          and event.what in ('like', 'pin', 'restore', 'edit')
          and not exists (
              select 1
                from event undoing
               where undoing.project = event.project
                 and undoing.subject = event.subject
                 and undoing.undoes = event.id
          )
   );
update learning
   set vouched = 'evidence'
 where vouched = ''
   and origin in ('agent', 'model')
   and author not in ('tool output', 'commit message')
   and times_helpful > times_not_helpful
   and (
       select count(*)
         from evidence
        where evidence.project = learning.project
          and evidence.learning = learning.id
          and evidence.kind = 'helpful'
          and evidence.conversation <> learning.task
   ) >= 2;
