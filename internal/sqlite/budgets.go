package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"junctor/internal/tool"
)

// TakeBudget implements store.Budgets.
func (s *Store) TakeBudget(ctx context.Context, name string, rate tool.Rate, want int) (got int, wait time.Duration, err error) {
	if rate.Calls <= 0 || rate.Per <= 0 || want <= 0 {
		return 0, 0, nil
	}
	full, each := float64(rate.Calls), rate.Per/time.Duration(rate.Calls)
	err = s.write.submit(ctx, several, func(w *writer) error {
		bg := context.Background()
		now := micros(s.now())
		left, at := full, now
		err := w.one(bg, "SELECT left, at FROM budgets WHERE name = ?", []any{name}, &left, &at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		left = min(full, left+float64(max(0, now-at))*full/float64(rate.Per.Microseconds()))
		if got = min(want, int(left)); got == 0 {
			wait = max(time.Microsecond, time.Duration((1-left)*float64(each)))
		}
		return w.exec(bg, `INSERT INTO budgets (name, left, at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET left = excluded.left, at = excluded.at`, name, left-float64(got), now)
	})
	if err != nil {
		return 0, 0, s.explain("take from budget "+name, err)
	}
	return got, wait, nil
}
