package redis_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/plugins/redis"
)

func TestMain(m *testing.M) {
	redis.Quiet()
	goleak.VerifyTestMain(m)
}
