// Command tbl tells whether work lands where its state lives.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"tbl/cmd/tbl/internal/app"
)

func main() {
	preprocess()
	// A reader that goes away must reach us as an error, not end the process.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the run in good order, the second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(app.Run(ctx, app.System(), os.Args[1:]))
}
