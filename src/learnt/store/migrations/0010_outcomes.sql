-- What came of a warning: whether the call was made after it, and whether anything was seen after it.
alter table warning add column late smallint not null default 0 check (late in (0, 1)); -- it was given after the call had failed
alter table warning add column made smallint not null default 0 check (made in (0, 1)); -- the call was made after the warning
alter table warning add column seen_at bigint; -- when the agent first went on: it said or called something once it had the result
alter table warning add column left_at bigint; -- when a person first wrote something after it

-- What was seen after earlier warnings is not known.
update warning
   set late = 1
 where failures > 0
   and exists (
       select 1
         from brief
        where brief.project = warning.project
          and brief.id = warning.brief
          and brief.occasion = 'failure'
   );
