//go:build tools

// Package tools keeps the commands that tests run in go.mod; nothing is compiled from here.
package tools

import _ "github.com/kcp-dev/kcp/cmd/kcp"
