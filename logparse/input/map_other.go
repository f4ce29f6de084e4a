//go:build !unix

package input

import "os"

// mapped is not to be had here.
func mapped(*os.File, int64, int64, func([]byte) error) (bool, error) { return false, nil }
