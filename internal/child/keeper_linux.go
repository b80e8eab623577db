//go:build linux && (amd64 || arm64)

package child

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The keeper is a process between this process and a program. As the init
// process of a PID namespace it reaps orphans and forwards signals, which an
// ordinary program with PID 1 does not do. The program's parent is a second
// keeper, because programs assume that they were orphaned if their parent has
// PID 1. If namespaces are not permitted, the keeper is a subreaper that kills
// all its descendants when this process dies.
//
// It is a program of about 1 KB, written in assembly in this package and put
// into an ELF file in memory, because every child needs one or two of them:
// using this whole executable as the keeper would cost 3 MB each.
// docs/decisions/0003-children.md has the measurements.

// The modes of the keeper.
const (
	keeperMounts    = "m" // init of a namespace with its own mounts; a folder to hide may follow
	keeperNamespace = "n" // init of a namespace
	keeperSubreaper = "s"
)

// keeperOrder is the signal on which a subreaper kills all its descendants.
const keeperOrder = unix.SIGUSR2

// keeperPC is where the code of the keeper begins and keeperEnd what follows it.
var keeperPC uintptr

const keeperEnd = "junctor\x00end\x00\xde\xc0\xad\x0b"

// keeperCode returns the machine code of the keeper.
func keeperCode() ([]byte, error) {
	const limit = 4 << 10
	for n := range limit {
		code := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), keeperPC)), n+len(keeperEnd))
		if bytes.HasSuffix(code, []byte(keeperEnd)) {
			return bytes.Clone(code[:n]), nil
		}
	}
	return nil, errors.New("keeper: end of code not found")
}

// elf wraps machine code into the smallest executable file that the kernel
// accepts: one segment that is readable and executable, and a stack that is not
// executable.
func elf(code []byte) []byte {
	const (
		base    = 0x400000
		headers = 64 + 2*56
	)
	machine := uint16(62) // x86-64
	if runtime.GOARCH == "arm64" {
		machine = 183
	}
	size := uint64(headers + len(code))
	b := make([]byte, 0, size)
	b = append(b, 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	le := binary.LittleEndian
	b = le.AppendUint16(b, 2) // executable
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+headers) // entry
	b = le.AppendUint64(b, 64)           // program headers
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 2, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // read, execute
	for _, v := range []uint64{0, base, base, size, size, 0x10000} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, 0x6474e551) // PT_GNU_STACK
	b = le.AppendUint32(b, 6)          // read, write
	for _, v := range []uint64{0, 0, 0, 0, 0, 16} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}

// keeperFile returns the keeper as an executable file without a name.
func keeperFile() (*os.File, error) {
	code, err := keeperCode()
	if err != nil {
		return nil, err
	}
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("junctor-keep", flags|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate("junctor-keep", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("keeper: memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "junctor-keep")
	defer f.Close()
	if _, err := f.Write(elf(code)); err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	// Best effort: seals prevent changes to the code while it is in use.
	_, _ = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE|unix.F_SEAL_SEAL)
	// A file that is open for writing cannot be executed.
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}
