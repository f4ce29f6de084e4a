// Package loader writes to a dataplane and accounts for every request: one
// write per fresh connection (Load), or batches of fresh keys (Bulk).
//
// It prints nothing and ends nothing: what went wrong is counted by class,
// what is doubtful travels as a warning, and what is bad as a verdict on the
// result. Both run until they are done, until their context is done (the
// result is then partial, and still adds up), or until the target turns out
// to be none. The share of requests that were sent always equals those that
// succeeded plus those that failed.
package loader
