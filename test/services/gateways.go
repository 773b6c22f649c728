package services

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

// gateways are servers that forward the responses of Options.Upstream, a server with OpenAI's chat API, to clients.
var gateways = []definition{
	{name: "litellm", service: "openai-chat", command: liteLLMCommand},
	{name: "nginx", service: "openai-chat", command: func(s setup) (command, error) { return nginxCommand(s, false) }},
	{name: "nginx-unbuffered", service: "openai-chat", command: func(s setup) (command, error) {
		return nginxCommand(s, true)
	}},
	{name: "haproxy", service: "openai-chat", command: haProxyCommand},
	{name: "ai-sdk", service: "test/services/ai-sdk.js", command: aiSDKCommand},
}

// Gateways returns the names of the gateways. Start needs Options.Upstream for them.
func Gateways() []string { return names(gateways) }

const liteLLMConfig = `model_list:
  - model_name: numbered
    litellm_params: {model: openai/numbered, api_base: %s/v1, api_key: none}
`

// liteLLMCommand returns the command of the proxy in the Python package litellm. The proxy requires a key.
func liteLLMCommand(s setup) (command, error) {
	ready, err := buildPath(s, "litellm", "litellm", "ready")
	if err != nil {
		return command{}, err
	}
	bin := filepath.Join(filepath.Dir(ready), "bin")
	config := filepath.Join(s.dir, "litellm.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, liteLLMConfig, s.Upstream), 0o600); err != nil {
		return command{}, fmt.Errorf("write LiteLLM's configuration: %w", err)
	}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return command{}, fmt.Errorf("start litellm: %w", err)
	}
	key := "sk-" + rand.Text()
	return command{
		path: filepath.Join(bin, "python"),
		args: []string{
			filepath.Join(bin, "litellm"), "--config", config, "--host", host, "--port", port, "--telemetry", "False",
		},
		env: []string{
			"LITELLM_MASTER_KEY=" + key, "LITELLM_LOCAL_MODEL_COST_MAP=True",
			"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		},
		key:     key,
		health:  "/health/liveliness",
		version: pythonVersion(filepath.Join(bin, "python"), "litellm"), settings: "1 worker, no database",
	}, nil
}

//go:embed *.tmpl
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "*.tmpl"))

// configure writes a configuration file called name from the template name.tmpl, and returns the path of the file.
func configure(s setup, name string, values map[string]any) (path string, err error) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name+".tmpl", values); err != nil {
		return "", err
	}
	path = filepath.Join(s.dir, name)
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return path, nil
}

// nginxCommand returns the command of nginx with its defaults or, if streams is set, with the settings that the nginx
// documentation recommends for streams.
func nginxCommand(s setup, streams bool) (command, error) {
	nginx, err := find("nginx", "nginx", "nginx-light")
	if err != nil {
		return command{}, err
	}
	const files = 10_000
	path, err := configure(s, "gateway.conf", map[string]any{
		"Dir": s.dir, "Address": s.address, "Upstream": s.Upstream, "Streams": streams,
		"Root": os.Geteuid() == 0, "Files": files,
	})
	if err != nil {
		return command{}, err
	}
	settings := "1 worker, defaults: proxy_buffering on, HTTP/1.0 to the upstream"
	if streams {
		settings = "1 worker, proxy_buffering off, proxy_http_version 1.1"
	}
	return command{
		path: nginx, args: []string{"-e", filepath.Join(s.dir, "error.log"), "-c", path},
		version: nginxVersion(nginx), settings: settings,
	}, nil
}

func haProxyCommand(s setup) (command, error) {
	program, err := find("haproxy", "haproxy", "haproxy")
	if err != nil {
		return command{}, err
	}
	path, err := configure(s, "haproxy.cfg", map[string]any{
		"Address": s.address, "Upstream": strings.TrimPrefix(s.Upstream, "http://"),
	})
	if err != nil {
		return command{}, err
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(outputOf(program, "-v"), "HAProxy version "), " ")
	return command{
		path: program, args: []string{"-db", "-f", path}, version: "HAProxy " + version, settings: "1 process, defaults, timeouts of 60 s",
	}, nil
}

// aiSDKCommand returns the command of ai-sdk/server.js, a server with Vercel's AI SDK.
func aiSDKCommand(s setup) (command, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return command{}, &MissingError{"ai-sdk", "node is not installed; install Node 20.19 or later"}
	}
	server, err := buildPath(s, "ai-sdk", "ai-sdk", "server.js")
	if err != nil {
		return command{}, err
	}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return command{}, fmt.Errorf("start ai-sdk: %w", err)
	}
	return command{
		path: node, args: []string{server, host, port, s.Upstream + "/v1"},
		version: aiSDKVersion(node, filepath.Dir(server)), settings: "1 process of Node, streamText without abortSignal",
	}, nil
}

// aiSDKVersion returns the versions of the AI SDK and of Node, or "" if they are unknown.
func aiSDKVersion(node, dir string) string {
	const script = `const of = (name) => name + ' ' + require(process.argv[1] + '/node_modules/' + name + '/package.json').version;
console.log([of('ai'), of('@ai-sdk/openai-compatible'), 'Node ' + process.versions.node].join(', '))`
	return outputOf(node, "--input-type=commonjs", "--eval", script, dir)
}
