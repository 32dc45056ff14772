module kuberay.test/pause

go 1.24
