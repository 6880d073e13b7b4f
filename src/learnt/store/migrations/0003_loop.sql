-- What a proposed learning would replace: a JSON list of ids.
alter table learning add column replaces text not null default '[]';

-- When a failure report was put away: it then stands in no brief any more.
alter table failure add column archived_at bigint;
