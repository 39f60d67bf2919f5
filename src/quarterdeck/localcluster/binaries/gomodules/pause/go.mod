module quarterdeck.dev/build/pause

go 1.26.0
