//go:build !linux

package cli

// holder says which process has a broker's directory open, which is not found out here.
func holder(string) string { return "" }
