//go:build !unix

package main

func preprocess() {}
