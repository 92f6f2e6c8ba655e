package rocketmq_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// aKeptVolumeRepeatsNothing runs a broadcasting job in processes that come up under another name of their host each, as containers
// do, and have nothing in common but the directory of their offsets. Each begins where the one before it stopped, in the
// middle of its work.
func aKeptVolumeRepeatsNothing(a *act) {
	const rounds, each = 3, 60

	var (
		volume = a.TempDir()
		hosts  = map[string]bool{}
		done   = map[int]int{} // by the number of the message
		hasUTS = exec.CommandContext(a.Context(), "unshare", "-u", "true").Run() == nil
		began  = time.Now()
	)

	for round := range rounds {
		a.publishes(each) // nobody is there

		last := round == rounds-1
		container := exec.CommandContext(a.Context(), os.Args[0], "-test.run=^TestSceneChild$", "-test.timeout=10m")

		if hasUTS { // who may not give a process a host name of its own sees the rest
			container = exec.CommandContext(a.Context(), "unshare", append([]string{
				"-u", "sh", "-c", `hostname "$0" && exec "$@"`, fmt.Sprintf("box-%d", round),
			}, container.Args...)...)
		}

		container.Stderr = os.Stderr
		container.Env = append(os.Environ(),
			sceneServer+"="+a.cluster.NameServer, sceneLedger+"=/dev/stdout", sceneVolume+"="+volume)

		out, err := container.StdoutPipe()
		if err != nil {
			a.Fatal(err)
		}

		if err := container.Start(); err != nil {
			a.Fatal(err)
		}

		asked := false

		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch words := strings.Fields(lines.Text()); {
			case len(words) < 3:
			case words[1] == "H":
				hosts[words[2]] = true
			case words[1] == "W" || words[1] == "D":
				done[sceneNumber(words[2])]++
			}

			if !asked && (!last && len(done) >= each*round+each/2 || len(done) == a.published) {
				asked = true

				if err := container.Process.Signal(syscall.SIGTERM); err != nil {
					a.Fatal(err)
				}
			}
		}

		if err := container.Wait(); err != nil {
			a.Fatalf("round %d ended with %v", round, err)
		}

		a.Logf("after round %d %d of %d are done", round, len(done), a.published)
	}

	for n := range a.published {
		if done[n] != 1 {
			a.Errorf("message %d was done %d times", n, done[n])
		}
	}

	if hasUTS && len(hosts) != rounds {
		a.Errorf("the hosts were %v", hosts)
	}

	a.Logf("%d messages by %d processes on hosts %v in %v", len(done), rounds, hosts, time.Since(began).Round(time.Millisecond))
}
