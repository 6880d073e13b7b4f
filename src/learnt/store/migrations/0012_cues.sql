-- Cues that the user's model wrote for the learning: a JSON list.
alter table learning add column model_cues text not null default '[]';
-- From people's prompts of tasks in which the learning helped, newest first: a JSON list.
alter table learning add column observed_cues text not null default '[]';
