package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"tbl/cmd/tbl/internal/render"
	"tbl/target"
	"tbl/timingstats/verdict"
)

// The exit codes.
const (
	exitOK          = 0
	exitFail        = 1   // a verdict fails
	exitUsage       = 2   // flags, arguments, files
	exitIncomplete  = 3   // not enough evidence
	exitInterrupted = 130 // after printing what was measured
)

// exitCodes explains them, for the manual.
var exitCodes = [...]struct {
	code int
	help string
}{
	{exitOK, "All is well, or only warnings."},
	{exitFail, "A verdict fails, or an --assert doesn't hold."},
	{exitUsage, "A flag, an argument or a file is wrong. One line on stderr says what; nothing was sent."},
	{exitIncomplete, "There is not enough evidence: the dataplane could not be reached, or cores were not heard; or the result, an export or the log could not be written whole."},
	{exitInterrupted, "Interrupted. What was measured until then is printed. (Ctrl-C is the end, no interruption, of what has no other: stats --follow, --log-cmd and --syslog-listen end with their verdict's code.)"},
}

// exitError is an error that knows its code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usagef is what the user has to change: exit 2.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// incompletef is a measurement that could not be made: exit 3.
func incompletef(format string, args ...any) error {
	return &exitError{exitIncomplete, fmt.Errorf(format, args...)}
}

// exitCode turns an error into the process's exit code, here and nowhere else.
func exitCode(err error) int {
	var e *exitError
	var t *target.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &t):
		return exitIncomplete
	}
	return exitUsage
}

// outcomeCode is the exit code of a command that measured.
func outcomeCode(s verdict.State, interrupted bool) int {
	switch {
	case interrupted:
		return exitInterrupted
	case s == verdict.Fail:
		return exitFail
	case s == verdict.Incomplete:
		return exitIncomplete
	}
	return exitOK
}

// afterRun gives an error that comes when something was sent, or printed, its
// code: it is no wrong use any more, and what a verdict says goes before it.
func (a *app) afterRun(err error) error {
	if err == nil || exitCode(err) != exitUsage && !errors.Is(err, errLogLost) {
		return err
	}
	return &exitError{cmp.Or(a.code, exitIncomplete), err}
}

// longestLine is how many characters of an error a user gets to see.
const longestLine = 1000

// oneLine keeps an error to the one line that a user reads.
func oneLine(err error) string {
	return plainLine(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " "))
}

// plainLine is a line as it may go to a terminal, whoever wrote parts of it.
func plainLine(s string) string { return render.Shortened(render.Visible(s), longestLine) }
