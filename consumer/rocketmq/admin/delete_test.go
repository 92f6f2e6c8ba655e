package admin_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/admin"
)

// TestAWholeClusterIsNotCleared asks for it at an address where nobody is: it is refused before anything is asked.
func TestAWholeClusterIsNotCleared(t *testing.T) {
	t.Parallel()

	c, err := admin.Open(admin.Options{NameServers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)

	if err := c.Clear(t.Context()); err == nil || !strings.Contains(err.Error(), "only a namespace can be cleared") {
		t.Errorf("the error is %v", err)
	}
}
