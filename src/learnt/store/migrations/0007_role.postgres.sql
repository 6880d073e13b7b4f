-- The role that has logged in, which the server knows; `who` is what the client says. Earlier rows have none.
alter table event add column role text not null default '';
alter table event alter column role set default session_user;
