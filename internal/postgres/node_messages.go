package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
)

// SendMessages implements store.Mail. It is repeated when the connection broke:
// letters may come twice.
func (s *Store) SendMessages(ctx context.Context, box string, letters ...[]byte) error {
	if len(letters) == 0 {
		return nil
	}
	err := s.read(ctx, "send mail", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "INSERT INTO mail (box, data) SELECT $1, data FROM unnest($2::bytea[]) WITH ORDINALITY AS l (data, n) ORDER BY n", box, letters)
		return err
	})
	return s.announced(store.TopicNodeMessages(box), err)
}

// TakeMessages implements store.Mail.
func (s *Store) TakeMessages(ctx context.Context, box string, done []int64) (out []store.NodeMessage, err error) {
	err = s.read(ctx, "take mail", func(ctx context.Context) (err error) {
		if len(done) > 0 {
			if _, err := s.pool.Exec(ctx, "DELETE FROM mail WHERE seq = ANY($1) AND box = $2", done, box); err != nil {
				return err
			}
		}
		out, err = collect(ctx, s, func(r pgx.CollectableRow) (l store.NodeMessage, err error) {
			err = r.Scan(&l.Seq, &l.Data)
			return l, err
		}, "SELECT seq, data FROM mail WHERE box = $1 ORDER BY seq LIMIT $2", box, store.MaxLetters)
		return err
	})
	return out, err
}
