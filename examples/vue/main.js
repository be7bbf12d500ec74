import { createApp } from 'vue'
import CoursePage from './course-page.vue'

createApp(CoursePage).mount('#app')
