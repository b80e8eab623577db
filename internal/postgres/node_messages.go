package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
)

// SendMessages implements store.NodeMessages. It is repeated when the connection broke:
// messages may come twice.
func (s *Store) SendMessages(ctx context.Context, queue string, messages ...[]byte) error {
	if len(messages) == 0 {
		return nil
	}
	err := s.read(ctx, "send messages to a node", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "INSERT INTO mail (box, data) SELECT $1, data FROM unnest($2::bytea[]) WITH ORDINALITY AS l (data, n) ORDER BY n", queue, messages)
		return err
	})
	return s.announced(store.TopicNodeMessages(queue), err)
}

// TakeMessages implements store.NodeMessages.
func (s *Store) TakeMessages(ctx context.Context, queue string, done []int64) (out []store.NodeMessage, err error) {
	err = s.read(ctx, "receive messages of other nodes", func(ctx context.Context) (err error) {
		if len(done) > 0 {
			if _, err := s.pool.Exec(ctx, "DELETE FROM mail WHERE seq = ANY($1) AND box = $2", done, queue); err != nil {
				return err
			}
		}
		out, err = collect(ctx, s, func(r pgx.CollectableRow) (l store.NodeMessage, err error) {
			err = r.Scan(&l.Seq, &l.Data)
			return l, err
		}, "SELECT seq, data FROM mail WHERE box = $1 ORDER BY seq LIMIT $2", queue, store.MaxNodeMessages)
		return err
	})
	return out, err
}
