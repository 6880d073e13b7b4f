-- Whether the agent was given a brief: delivered, not delivered, or empty if it is not known, as for what hooks said before.
alter table brief add column delivery text not null default '' check (delivery in ('', 'delivered', 'not delivered'));
-- A brief that somebody asked for was the answer, so it was delivered.
update brief set delivery = 'delivered' where asked_by not in ('', 'hook');
-- What a plugin of ours that saw the requests to the model says about it, if there is one.
alter table brief add column reported text not null default '' check (reported in ('', 'delivered', 'not delivered'));
-- When the learning first reached the agent in this task. What was injected before has been counted as delivered.
alter table injection add column delivered_at bigint;
update injection set delivered_at = injected_at where held_out = 0;
alter table attempt add column ignored text not null default ''; -- what was ignored in its output, and why, on a line each
