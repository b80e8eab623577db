package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	mapAfter = 64 << 10 // size at which a file is mapped
	saltMark = "-s"     // before the salt at the end of a journal's name
	saltLen  = 8        // number of its hexadecimal digits
)

// journalFile is one file of the journal. On Linux a file with many records is
// extended to maxJournal and mapped, and records are copied into it: the kernel
// then has them, as after a write, but without a system call. When all of it is
// in blocks it is reused under another name, because allocating and freeing the
// pages of a file costs more than writing to them.
//
// The previous content of a reused file must not be read as records of the new
// one, even if the system crashes when only some of its pages have reached the
// disk. The checksums of such a file are therefore combined with a salt, which
// is part of its name.
type journalFile struct {
	*os.File
	size   int64  // bytes of whole records
	done   int64  // bytes of records that are in blocks
	sealed bool   // nothing more is written to it
	failed bool   // a write to it failed
	mapped []byte // nil if it is not mapped
	tried  bool   // mapping was attempted
	salt   uint32
}

func (f *journalFile) name() string { return filepath.Base(f.Name()) }

// mapOnce tries to map the file, once, unless it is more than half full.
func (f *journalFile) mapOnce() {
	if f.tried || f.size > maxJournal/2 {
		return
	}
	f.tried = true
	f.mapped, _ = mapFile(f.File, maxJournal) // on failure, records are written with system calls
}

// isFull reports whether n more bytes do not fit into a mapped file. Large
// records extend the file instead, so that little of it remains unused.
func (f *journalFile) isFull(n int) bool {
	return f.mapped != nil && n <= maxJournal/16 && f.size+int64(n) > int64(len(f.mapped))
}

// write appends records to the file. It modifies records if the file has a salt.
func (f *journalFile) write(records []byte) error {
	if f.salt != 0 {
		addSalt(records, f.salt)
	}
	if end := f.size + int64(len(records)); end <= int64(len(f.mapped)) {
		return onMapped(func() { copy(f.mapped[f.size:end], records) })
	}
	_, err := f.WriteAt(records, f.size)
	return err
}

// clear empties a file whose records are in blocks, and reports whether it can
// be reused.
func (f *journalFile) clear() bool {
	if f.failed || f.mapped == nil || f.size > int64(len(f.mapped)) {
		return false
	}
	if onMapped(func() { clear(f.mapped[:f.size]) }) != nil {
		return false
	}
	f.size, f.done, f.sealed = 0, 0, false
	return true
}

// rename renames an empty file, keeping its lock and its mapping.
func (f *journalFile) rename(name string) error {
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	named, err := reopen(f.File, name)
	if err != nil {
		return errors.Join(err, ignoreAbsent(os.Remove(name)))
	}
	err = f.File.Close()
	f.File, f.salt = named, saltOf(name)
	return err
}

// remove closes and deletes a file without records to move. If that fails, a
// later sweep deletes it.
func (f *journalFile) remove() error {
	return errors.Join(f.Close(), ignoreAbsent(os.Remove(f.Name())))
}

// Close closes the file and releases its lock.
func (f *journalFile) Close() error {
	err := unmapFile(f.mapped)
	f.mapped = nil
	return errors.Join(err, f.File.Close())
}

// onMapped runs f, which accesses mapped memory. It returns an error if the
// system cannot provide a page because of a disk error or a truncated file.
func onMapped(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write to a mapped file: %v", p)
		}
	}()
	f()
	return nil
}

// newSalt returns a new salt in the form that is part of a name.
func newSalt() string { return fmt.Sprintf("%0*x", saltLen, rand.Uint32N(1<<32-1)+1) }

// saltOf returns the salt in the name of a journal, or 0 if it has none.
func saltOf(name string) uint32 {
	at := strings.LastIndex(name, saltMark)
	if at < 0 || len(name)-at != len(saltMark)+saltLen {
		return 0
	}
	salt, err := strconv.ParseUint(name[at+len(saltMark):], 16, 32)
	if err != nil {
		return 0
	}
	return uint32(salt)
}

// addSalt combines the checksums of consecutive whole records with a salt.
func addSalt(records []byte, salt uint32) {
	for len(records) >= recordHead {
		sum := records[4:recordHead]
		binary.LittleEndian.PutUint32(sum, binary.LittleEndian.Uint32(sum)^salt)
		records = records[min(recordSize(records), int64(len(records))):]
	}
}
