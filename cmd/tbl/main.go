// Command tbl tells whether work lands where its state lives.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tbl/cmd/tbl/internal/app"
)

func main() {
	preprocess()
	// A reader that goes away must reach us as an error, not end the process.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the run in good order, the second one kills: not the
	// same one that comes twice, as timeout(1) sends it, to its child and to the
	// group that this is in.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second/2, stop) })
	os.Exit(app.Run(ctx, app.System(), os.Args[1:]))
}
