-- The place of a learning in the indexes of words and of meanings; a newer learning has a greater number.
alter table learning add column number bigint;
-- The part of an import that added the learning; null once the event is a row of its own.
alter table learning add column batch bigint;
create unique index learning_by_number on learning (project, number);

-- Indexes hold no more than a lookup needs: most learnings have no goal, task, domain or successor.
drop index learning_by_age;
drop index learning_by_status;
drop index learning_by_confidence;
drop index learning_by_domain;
drop index learning_by_category;
drop index learning_by_goal;
drop index learning_by_successor;
drop index learning_by_task;
drop index learning_by_sameness;
drop index learning_by_title_sameness;
create index learning_by_age on learning (project, created_at);
create index learning_by_status on learning (project, status, created_at);
create index learning_by_domain on learning (project, domain, status) where domain <> '';
create index learning_by_goal on learning (project, goal, status) where goal <> '';
create index learning_by_task on learning (project, task) where task <> '';
create index learning_by_successor on learning (project, superseded_by) where superseded_by <> '';
create index learning_by_sameness on learning (project, (substr(sameness, 1, 8)));
create index learning_by_title_sameness on learning (project, (substr(title_sameness, 1, 8)));
create index learning_by_category on learning (
    project, category, status, pinned, (times_helpful - times_not_helpful), recurrences, created_at
);
