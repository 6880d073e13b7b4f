-- A file has no login roles; the column exists because both engines have one schema.
alter table event add column role text not null default '';
