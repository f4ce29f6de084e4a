package target

import "context"

// askTries is how often a question is put whose answer is lost.
const askTries = 5

// Ask puts a question that changes nothing, and puts it again when its answer
// is lost on the way: a target that loses some still has to be judged. The
// error is the last one's; one that Unsupported reports is an answer.
func Ask(ctx context.Context, t Target, op Op, ans *Answer) (err error) {
	for range askTries {
		if err = t.Do(ctx, &Request{Op: op}, ans); err == nil || Unsupported(err) {
			return err
		}
		switch ClassOf(err) {
		case ClassReset, ClassTruncated, ClassHTTP5xx:
		default:
			return err
		}
	}
	return err
}
