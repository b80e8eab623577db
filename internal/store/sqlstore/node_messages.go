package sqlstore

import (
	"context"

	"junctor/internal/store"
)

var nodeMessages = table[store.NodeMessage]{
	"mail", "seq, data",
	func(m *store.NodeMessage) []any { return []any{&m.Seq, &m.Data} },
}

// SendMessages implements store.NodeMessages. It is retried when the connection
// breaks, so messages may arrive twice.
func (r Records) SendMessages(ctx context.Context, queue string, messages ...[]byte) error {
	if len(messages) == 0 {
		return nil
	}
	var inserts []Statement
	for _, data := range messages {
		inserts = append(inserts, Statement{"INSERT INTO mail (box, data, at) VALUES (?1, ?2, {now})", []any{queue, data}})
	}
	_, err := r.db.Exec(ctx, Op{"send messages to a node", Repeat}, inserts...)
	return r.announced(store.TopicNodeMessages(queue), err)
}

// TakeMessages implements store.NodeMessages.
func (r Records) TakeMessages(ctx context.Context, queue string, done []int64) ([]store.NodeMessage, error) {
	const act = "receive messages of other nodes"
	if len(done) > 0 {
		var deletions []Statement
		for _, seq := range done {
			deletions = append(deletions, Statement{"DELETE FROM mail WHERE seq = ?1 AND box = ?2", []any{seq, queue}})
		}
		if _, err := r.db.Exec(ctx, Op{act, Repeat}, deletions...); err != nil {
			return nil, err
		}
	}
	return nodeMessages.list(ctx, r.db, act, " WHERE box = ?1 ORDER BY seq LIMIT ?2", queue, store.MaxNodeMessages)
}

// Release implements store.Leases. The row remains for a while because the next
// token is derived from it.
func (r Records) Release(ctx context.Context, name, owner string) error {
	_, err := r.exec(ctx, Op{"release lease " + name, Repeat}, "UPDATE leases SET owner = '', until = {now} WHERE name = ?1 AND owner = ?2", name, owner)
	return err
}
