package sqlite

import (
	"context"

	"junctor/internal/store"
)

// SendMessages implements store.NodeMessages.
func (s *Store) SendMessages(ctx context.Context, queue string, messages ...[]byte) error {
	if len(messages) == 0 {
		return nil
	}
	err := s.write.submit(ctx, several, func(w *writer) error {
		for _, data := range messages {
			if err := w.exec(context.Background(), "INSERT INTO mail (box, data, at) VALUES (?, ?, ?)", queue, blob(data), micros(s.now())); err != nil {
				return err
			}
		}
		return nil
	})
	return s.announced(store.TopicNodeMessages(queue), s.explain("send messages to a node", err))
}

// TakeMessages implements store.NodeMessages.
func (s *Store) TakeMessages(ctx context.Context, queue string, done []int64) ([]store.NodeMessage, error) {
	if len(done) > 0 {
		err := s.write.submit(ctx, several, func(w *writer) error {
			for _, seq := range done {
				if err := w.exec(context.Background(), "DELETE FROM mail WHERE seq = ? AND box = ?", seq, queue); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, s.explain("receive messages of other nodes", err)
		}
	}
	out, err := collect(ctx, s.read, func(r row) (l store.NodeMessage, err error) {
		err = r.Scan(&l.Seq, &l.Data)
		return l, err
	}, "SELECT seq, data FROM mail WHERE box = ? ORDER BY seq LIMIT ?", queue, store.MaxNodeMessages)
	return out, s.explain("receive messages of other nodes", err)
}
