-- What must be true, in words, when a task is done; an agent is told before it starts.
alter table task add column acceptance text not null default '';

-- What an attempt may cost by the price of its model: reserved in the claim, and counted while the cost is unknown.
alter table claim add column price_usd double precision not null default 0;
alter table attempt add column price_usd double precision;
