//go:build !linux

package sqlite

import (
	"errors"
	"os"
)

func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { return nil }

func reopen(*os.File, string) (*os.File, error) { return nil, errors.ErrUnsupported }
