package targettest_test

import (
	"testing"

	"tbl/target"
	"tbl/target/targettest"
)

func TestSimple(t *testing.T) {
	targettest.Run(t, func(t *testing.T) target.Target { return targettest.NewSimple(4) }, targettest.Options{})
}
