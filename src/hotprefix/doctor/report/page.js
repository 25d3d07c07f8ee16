"use strict";
const root = document.documentElement;
const isDark = () => root.dataset.theme === "dark"
  || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
document.getElementById("language").addEventListener("click", () => {
  root.dataset.language = root.dataset.language === "en" ? "zh" : "en";
  root.lang = root.dataset.language === "en" ? "en" : "zh-CN";
});
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
});
