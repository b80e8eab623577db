package sqlite

import (
	"context"

	"junctor/internal/store"
)

// SendMessages implements store.Mail.
func (s *Store) SendMessages(ctx context.Context, box string, letters ...[]byte) error {
	if len(letters) == 0 {
		return nil
	}
	err := s.write.submit(ctx, several, func(w *writer) error {
		for _, data := range letters {
			if err := w.exec(context.Background(), "INSERT INTO mail (box, data, at) VALUES (?, ?, ?)", box, blob(data), micros(s.now())); err != nil {
				return err
			}
		}
		return nil
	})
	return s.announced(store.TopicNodeMessages(box), s.explain("send mail", err))
}

// TakeMessages implements store.Mail.
func (s *Store) TakeMessages(ctx context.Context, box string, done []int64) ([]store.NodeMessage, error) {
	if len(done) > 0 {
		err := s.write.submit(ctx, several, func(w *writer) error {
			for _, seq := range done {
				if err := w.exec(context.Background(), "DELETE FROM mail WHERE seq = ? AND box = ?", seq, box); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, s.explain("take mail", err)
		}
	}
	out, err := collect(ctx, s.read, func(r row) (l store.NodeMessage, err error) {
		err = r.Scan(&l.Seq, &l.Data)
		return l, err
	}, "SELECT seq, data FROM mail WHERE box = ? ORDER BY seq LIMIT ?", box, store.MaxLetters)
	return out, s.explain("take mail", err)
}
