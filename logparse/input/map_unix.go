//go:build unix

package input

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// mapped is Source.Mapped.
func mapped(f *os.File, from, to int64, fn func([]byte) error) (ok bool, err error) {
	page := int64(os.Getpagesize())
	base := from / page * page
	if to-base != int64(int(to-base)) {
		return false, nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false, nil
	}
	var mem []byte
	var merr error
	if err := conn.Control(func(fd uintptr) {
		mem, merr = unix.Mmap(int(fd), base, int(to-base), unix.PROT_READ, unix.MAP_SHARED)
	}); err != nil || merr != nil {
		return false, nil
	}
	defer unix.Munmap(mem)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface {
			error
			Addr() uintptr
		}:
			err = fmt.Errorf("%w: %w", ErrChanged, p)
		default:
			panic(p)
		}
	}()
	return true, fn(mem[from-base:])
}
