-- The permanent document that consolidation moved the learning into; a path in the project.
alter table learning add column topic_file text not null default '';
create index learning_by_topic_file on learning (project, topic_file) where topic_file <> '';

-- When a person undid the run: it then does not count as the last one.
alter table consolidation add column undone_at bigint;
