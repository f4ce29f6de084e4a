package table

import (
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// largePages asks for large pages for s and around it, before s is used. With
// small ones, who looks for records at random waits for memory twice: for the
// page's address and for the record. It is a hint: where the system has none,
// nothing is lost. It reaches neighbours' memory, too: what of that is in use in
// small pages the system may join later.
func largePages[T any](s []T) {
	var one T
	from := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	to := from + uintptr(len(s))*unsafe.Sizeof(one)
	from &^= hugePage - 1
	to = (to + hugePage - 1) &^ (hugePage - 1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_HUGEPAGE)
}
