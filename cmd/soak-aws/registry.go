package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"
)

// imagesOfOthers are those in compose.yaml that the stack's host pulls from registries.
func imagesOfOthers(compose string) ([]string, error) {
	text, err := os.ReadFile(compose) //nolint:gosec // G304: compose.yaml of the repository
	if err != nil {
		return nil, err
	}
	var file struct {
		Services map[string]struct{ Image string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", compose, err)
	}
	var images []string
	for _, s := range file.Services {
		if s.Image != "" && !strings.HasPrefix(s.Image, "sse-soak/") {
			images = append(images, s.Image)
		}
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

// checkImages asks the registries whether they have the images that the stack's host will pull.
func checkImages(ctx context.Context, compose string) finding {
	const what = "images of others"
	images, err := imagesOfOthers(compose)
	if err != nil {
		return fail(what, "%v", err)
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return fail(what, "Docker, which asks for them and builds the others, is not installed: https://docs.docker.com/engine/install/")
	}
	found := make([]error, len(images))
	var asked sync.WaitGroup
	for i, image := range images {
		asked.Go(func() { found[i] = inRegistry(ctx, image) })
	}
	asked.Wait()
	var missing, unknown []string
	pinned := 0
	for i, image := range images {
		switch {
		case errors.Is(found[i], errNoImage):
			missing = append(missing, found[i].Error())
		case found[i] != nil:
			unknown = append(unknown, found[i].Error())
		case strings.Contains(image, "@sha256:"):
			pinned++
		}
	}
	switch {
	case len(missing) > 0:
		return fail(what, "%s", strings.Join(missing, "; "))
	case len(unknown) > 0:
		return note(what, "%d of %d could not be asked for: %s", len(unknown), len(images), unknown[0])
	}
	return ok(what, "all %d are there for linux/amd64, %d of them pinned by digest", len(images), pinned)
}

var errNoImage = errors.New("the registry has none for linux/amd64")

// inRegistry asks the registry for an image, without pulling it.
func inRegistry(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", "manifest", "inspect", image) //nolint:gosec // G204: image names of compose.yaml, without a shell
	said, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		switch why := strings.TrimSpace(string(exit.Stderr)); {
		case strings.Contains(why, "no such manifest"), strings.Contains(why, "manifest unknown"):
			return fmt.Errorf("%s: %w", image, errNoImage)
		case strings.Contains(why, "toomanyrequests"), strings.Contains(why, "rate limit"):
			return fmt.Errorf("%s: the registry's rate limit for this machine is reached, wait or `docker login` (hosts have addresses of their own)", image)
		default:
			return fmt.Errorf("%s: %s", image, why)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", image, err)
	}
	var list struct {
		Manifests []struct {
			Platform struct{ OS, Architecture string }
		}
	}
	if err := json.Unmarshal(said, &list); err != nil {
		return fmt.Errorf("%s: %w", image, err)
	}
	for _, m := range list.Manifests {
		if m.Platform.OS == "linux" && m.Platform.Architecture == "amd64" {
			return nil
		}
	}
	if len(list.Manifests) == 0 { // one image, whose platform it does not say
		return nil
	}
	return fmt.Errorf("%s: %w", image, errNoImage)
}
