-- A caller is known by its key's id, no longer by the key's name: a name may
-- be given again. What the bearer of a key owned by its name goes to the key
-- that had the name at that time.

-- +goose Up

UPDATE sessions SET owner = 'key:' || (
	SELECT k.id FROM keys k WHERE 'key:' || k.name = sessions.owner AND k.created <= sessions.created ORDER BY k.created DESC, k.id LIMIT 1)
WHERE EXISTS (SELECT 1 FROM keys k WHERE 'key:' || k.name = sessions.owner AND k.created <= sessions.created);

UPDATE calls SET caller = 'key:' || (
	SELECT k.id FROM keys k WHERE 'key:' || k.name = calls.caller AND k.created <= calls.time ORDER BY k.created DESC, k.id LIMIT 1)
WHERE caller IN (SELECT 'key:' || name FROM keys) AND EXISTS (SELECT 1 FROM keys k WHERE 'key:' || k.name = calls.caller AND k.created <= calls.time);

-- Approvals for always said neither which key nor which definition they were
-- for; people are asked again.
DELETE FROM vals WHERE space = 'chat-approvals';
