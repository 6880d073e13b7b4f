-- What a goal wants, in more words than its title; the agents that work for it are told.
alter table goal add column text text not null default '';
alter table goal add column updated_at bigint not null default 0;
